# The image of the pipeline's containers on Kubeflow (docs/kubeflow.md), with exactly the versions of uv.lock:
#   docker build -t registry.example.com/crowdzoo:1.0 .
#   docker build --build-arg GPU="--extra gpu" --build-arg TENSORFLOW=tensorflow -t registry.example.com/crowdzoo:1.0-gpu .
# Every download is checked against a hash: of uv.lock, or of image.txt, which `make lock` writes. To look up the digests
# of newer base images:  docker buildx imagetools inspect python:3.10-bookworm --format '{{.Manifest.Digest}}'
# These are those of https://github.com/docker-library/repo-info (repos/python/remote), of Python 3.10.21.
ARG BUILD_BASE=python:3.10-bookworm@sha256:0a06143d04e5207c0561a9803a007af1d3e7941634fd1a7f801079dca3644bf5
ARG BASE=python:3.10-slim-bookworm@sha256:673f009e3763f8d03953b525c89b03a9ee8ca315bf6b8006979b5c4a4e2e4d68

# The full image has the compiler that one of TFX's requirements is built with
FROM $BUILD_BASE AS build
WORKDIR /src
COPY image.txt ./
RUN sed -n '/^uv==/,/[^\\]$/p' image.txt > uv.txt && pip install --no-cache-dir --require-hashes -r uv.txt
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never UV_BUILD_CONSTRAINT=/src/image.txt \
    UV_NO_CACHE=1 VIRTUAL_ENV=/opt/crowdzoo
# On CPUs TensorFlow without the code for GPUs; and no JupyterLab, which TFX's widgets ask for
ARG GPU="" TENSORFLOW=tensorflow-cpu
ENV LEFT_OUT="--no-emit-package tensorflow --no-emit-package notebook --no-emit-package jupyterlab \
    --no-emit-package jupyterlab-server --no-emit-package jupyter-server --no-emit-package jupyter-lsp \
    --no-emit-package jupyter-server-terminals --no-emit-package jupyter-events --no-emit-package jupyter-builder \
    --no-emit-package notebook-shim --no-emit-package nbconvert --no-emit-package debugpy"
# Requirements first: they are made again only where the lock has changed
COPY pyproject.toml setup.py uv.lock README.md LICENSE NOTICE ./
RUN sed -n "/^$TENSORFLOW==/,/[^\\\\]\$/p" image.txt > requirements.txt \
    && uv export -q --frozen --no-dev --no-emit-project $LEFT_OUT $GPU \
    --extra pipeline --extra text --extra images --extra s3 >> requirements.txt \
    && uv venv -q $VIRTUAL_ENV && uv pip install --require-hashes --no-deps -r requirements.txt
COPY crowdzoo crowdzoo
COPY components components
COPY pipelines pipelines
COPY serving serving
RUN uv pip install --no-deps .

FROM $BASE
# Kubeflow's launcher runs as this user, too, and copies artifacts to the last three
RUN useradd --uid 1000 --create-home crowdzoo \
    && install -d -o 1000 -g 0 -m 0775 /gcs /minio /s3
COPY --from=build /opt/crowdzoo /opt/crowdzoo
ENV PATH=/opt/crowdzoo/bin:$PATH NUMBA_CACHE_DIR=/tmp/numba TF_CPP_MIN_LOG_LEVEL=2
USER 1000
WORKDIR /home/crowdzoo
ENTRYPOINT ["crowdzoo"]
