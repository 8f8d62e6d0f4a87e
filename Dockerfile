# The image of the pipeline's containers on Kubeflow (docs/kubeflow.md), with exactly the versions of uv.lock:
#   docker build -t registry.example.com/crowdzoo:1.0 .
#   docker build --build-arg GPU="--extra gpu" --build-arg TENSORFLOW=tensorflow -t registry.example.com/crowdzoo:1.0-gpu .

# The full image has the compiler that one of TFX's requirements is built with
FROM python:3.10-bookworm AS build
RUN pip install --no-cache-dir uv==0.13.8
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT=/opt/crowdzoo
WORKDIR /src
# On CPUs TensorFlow without the code for GPUs; and no JupyterLab, which TFX's widgets ask for
ARG GPU="" TENSORFLOW=tensorflow-cpu
ENV LEFT_OUT="--no-install-package tensorflow --no-install-package notebook --no-install-package jupyterlab \
    --no-install-package jupyterlab-server --no-install-package jupyter-server --no-install-package jupyter-lsp \
    --no-install-package jupyter-server-terminals --no-install-package jupyter-events --no-install-package jupyter-builder \
    --no-install-package notebook-shim --no-install-package nbconvert --no-install-package debugpy"
# Requirements first: they are made again only where the lock has changed
COPY pyproject.toml setup.py uv.lock README.md LICENSE NOTICE ./
RUN uv sync --frozen --no-dev --no-install-project $LEFT_OUT $GPU \
    --extra pipeline --extra text --extra images --extra s3
COPY crowdzoo crowdzoo
COPY components components
COPY pipelines pipelines
COPY serving serving
RUN uv sync --frozen --no-dev --no-editable $LEFT_OUT $GPU \
    --extra pipeline --extra text --extra images --extra s3 \
    && uv pip install --python /opt/crowdzoo --no-deps $TENSORFLOW==2.16.2

FROM python:3.10-slim-bookworm
# Kubeflow's launcher runs as this user, too, and copies artifacts to the last three
RUN useradd --uid 1000 --create-home crowdzoo \
    && install -d -o 1000 -g 0 -m 0775 /gcs /minio /s3
COPY --from=build /opt/crowdzoo /opt/crowdzoo
ENV PATH=/opt/crowdzoo/bin:$PATH NUMBA_CACHE_DIR=/tmp/numba TF_CPP_MIN_LOG_LEVEL=2
USER 1000
WORKDIR /home/crowdzoo
ENTRYPOINT ["crowdzoo"]
