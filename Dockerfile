# PyTorch with CUDA and Triton, a C++ compiler for Inductor, and this package; the guided tour is its command.
#
#     docker compose build
#     docker compose run --rm torchcompile                      # the tour
#     docker compose run --rm torchcompile python -m compile_inspect.inductor_codegen
#     docker compose run --rm torchcompile bash
#
# PyPI's torch for Linux brings CUDA's libraries and Triton as packages, so that no image of NVIDIA's is needed: the driver
# comes from the host, see compose.gpu.yaml. Without a GPU everything runs on the CPU.
FROM python:3.12-slim-bookworm

# Inductor writes C++ and compiles it when a model is first called; Triton compiles its launcher in the same way.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*

# Indexes to be used instead of PyPI, or beside it; empty unless they are given when the image is built.
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL

# The gigabytes first: this layer is made anew only when another torch is pinned.
WORKDIR /build
COPY constraints.txt ./
RUN --mount=type=cache,target=/root/.cache/pip \
    pip install --root-user-action=ignore --constraint constraints.txt torch

COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src ./src
RUN --mount=type=cache,target=/root/.cache/pip \
    pip install --root-user-action=ignore --constraint constraints.txt '.[plot]'

# Whoever runs it need not be known here: compose.yaml may name any user, and both folders can be written by all of them.
RUN useradd --create-home --uid 1000 tour \
    && install --directory --mode=1777 /var/cache/compile /work
ENV USER=tour \
    HOME=/tmp \
    TORCHINDUCTOR_CACHE_DIR=/var/cache/compile/inductor \
    TRITON_CACHE_DIR=/var/cache/compile/triton \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER tour
WORKDIR /work
CMD ["python", "-m", "compile_inspect.main"]
