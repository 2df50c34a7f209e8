"""Queries of TPC-H that need these two tables alone, with the parameters of its validation runs."""

QUERIES = {
    "Q1": """SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
        sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), avg(l_quantity),
        avg(l_extendedprice), avg(l_discount), count(*) FROM {lineitem} WHERE l_shipdate <= date '1998-09-02'
        GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
    "Q4": """SELECT o_orderpriority, count(*) FROM {orders} WHERE o_orderdate >= date '1993-07-01'
        AND o_orderdate < date '1993-10-01' AND EXISTS (SELECT * FROM {lineitem} WHERE l_orderkey = o_orderkey
        AND l_commitdate < l_receiptdate) GROUP BY o_orderpriority ORDER BY o_orderpriority""",
    "Q6": """SELECT sum(l_extendedprice * l_discount) FROM {lineitem} WHERE l_shipdate >= date '1994-01-01'
        AND l_shipdate < date '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
    "Q12": """SELECT l_shipmode, sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END), count(*)
        FROM {orders}, {lineitem} WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP')
        AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate AND l_receiptdate >= date '1994-01-01'
        AND l_receiptdate < date '1995-01-01' GROUP BY l_shipmode ORDER BY l_shipmode""",
}
"""By name; the tables are filled in."""
