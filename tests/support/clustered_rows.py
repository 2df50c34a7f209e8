"""Rows of tables in cells, of either format: types of columns, and values as SQL of the row's number `id`."""

from collections.abc import Mapping

NUMBERS = {"a": "BIGINT", "b": "BIGINT", "t": "STRING"}
RANDOM = "CAST(rand({seed}) * 1000000 AS BIGINT) a; CAST(rand({seed} + 1) * 1000000 AS BIGINT) b; uuid() t"

VALUES = {
    "floats": (
        {"x": "DOUBLE", "y": "FLOAT", "t": "STRING"},
        """
        CASE id % 20 WHEN 0 THEN DOUBLE('NaN') WHEN 1 THEN null WHEN 2 THEN DOUBLE('Infinity')
            WHEN 3 THEN -DOUBLE('Infinity') WHEN 4 THEN -0.0D ELSE rand(1) - 0.5 END x;
        CAST(IF(id % 9 = 0, null, rand(2)) AS FLOAT) y; uuid() t
        """,
    ),
    "texts and decimals": (
        {"x": "STRING", "y": "DECIMAL(38,20)", "t": "STRING"},
        """
        CASE WHEN id % 10 < 3 THEN concat(repeat('ä', 40), id) WHEN id % 10 = 3 THEN null WHEN id % 10 = 4 THEN ''
            ELSE uuid() END x;
        CAST(rand(2) * IF(id % 2 = 0, -7, 5) + id / 7 AS DECIMAL(38,20)) y; uuid() t
        """,
    ),
    "times": (
        {"x": "TIMESTAMP", "y": "DATE", "t": "STRING"},
        """
        IF(id % 7 = 0, null, timestamp_micros(CAST(1700000000000000 + rand(1) * 20000 AS BIGINT))) x;
        IF(id % 3 = 0, DATE'1969-12-31', date_add(DATE'2020-01-01', CAST(rand(2) * 300 AS INT))) y; uuid() t
        """,
    ),
    "what files store in order": (
        {"x": "STRUCT<y: STRING, z: DECIMAL(10,2)>", "y": "SMALLINT", "t": "ARRAY<STRUCT<u: STRING, d: DOUBLE>>"},
        """
        CASE WHEN id % 11 = 0 THEN null ELSE
            struct(CASE WHEN id % 10 < 3 THEN concat(repeat('ä', 40), id) WHEN id % 10 = 3 THEN null ELSE uuid() END y,
                CAST(rand(2) * IF(id % 2 = 0, -7, 5) AS DECIMAL(10,2)) z) END x;
        IF(id % 7 = 0, null, CAST(rand(1) * 3000 - 1500 AS SMALLINT)) y;
        IF(id % 3 = 0, null, array(struct(uuid() u, id / 7D d), null)) t
        """,
    ),
    "equal keys": ({"x": "INT", "y": "STRING", "t": "STRING"}, "7 x; CAST(null AS STRING) y; uuid() t"),
}


def keys_of(kinds: Mapping[str, str]) -> tuple[str, ...]:
    """The columns of one of these to cluster by."""
    return ("x.y", "x.z", "y") if "STRUCT" in kinds["x"] else ("x", "y")
