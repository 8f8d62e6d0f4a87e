# The image of the pipeline's containers on Kubeflow (docs/kubeflow.md), with exactly the versions of uv.lock:
#   docker build -t registry.example.com/crowdzoo:1.0 .

# The full image has the compiler that one of TFX's requirements is built with
FROM python:3.10-bookworm AS build
RUN pip install --no-cache-dir uv==0.13.8
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT=/opt/crowdzoo
WORKDIR /src
# Requirements first: they are made again only where the lock has changed
COPY pyproject.toml uv.lock README.md LICENSE NOTICE ./
RUN uv sync --frozen --no-dev --no-install-project \
    --extra pipeline --extra text --extra images --extra s3
COPY crowdzoo crowdzoo
COPY components components
COPY pipelines pipelines
COPY serving serving
RUN uv sync --frozen --no-dev --no-editable \
    --extra pipeline --extra text --extra images --extra s3

FROM python:3.10-slim-bookworm
# Kubeflow's launcher runs as this user, too, and copies artifacts to the last three
RUN useradd --uid 1000 --create-home crowdzoo \
    && install -d -o 1000 -g 0 -m 0775 /gcs /minio /s3
COPY --from=build /opt/crowdzoo /opt/crowdzoo
ENV PATH=/opt/crowdzoo/bin:$PATH NUMBA_CACHE_DIR=/tmp/numba TF_CPP_MIN_LOG_LEVEL=2
USER 1000
WORKDIR /home/crowdzoo
ENTRYPOINT ["crowdzoo"]
