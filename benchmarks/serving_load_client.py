"""The clients of `serving_load.py`, in a process of their own; prints a JSON report."""

import asyncio
import json
import sys
import time
from typing import Any

import numpy as np


def message(instances: list[list[float]]) -> bytes:
    """A whole REST request."""
    body = json.dumps({"instances": instances}).encode()
    head = f"POST /v1/models/model:predict HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class RestConnection:
    """One connection; opened anew after whatever went wrong."""

    def __init__(self, port: int):
        self.port = port
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> int:
        """Sends a request and reads its answer; returns the status."""
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)
        reader, writer = self.streams
        writer.write(request)
        await writer.drain()
        status = int((await reader.readline()).split()[1])
        length, closes = 0, False
        while (line := (await reader.readline()).lower()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            length = int(value) if name == b"content-length" else length
            closes |= name == b"connection" and value.strip() == b"close"
        await reader.readexactly(length)
        if closes:
            self.close()
        return status

    def close(self) -> None:
        """Closes it; the next request opens another."""
        if self.streams is not None:
            self.streams[1].close()
        self.streams = None


async def rest_client(port: int, request: bytes, end: float, deadline: float, counts: dict[str, int]) -> None:
    """Asks one request after another until `end`."""
    connection = RestConnection(port)
    while time.monotonic() < end:
        try:
            status = str(await asyncio.wait_for(connection.ask(request), deadline))
        except (asyncio.TimeoutError, TimeoutError):
            status = "late"
        except (OSError, asyncio.IncompleteReadError, IndexError, ValueError):
            status = "broken"
        counts[status] = counts.get(status, 0) + 1
        if status != "200":
            connection.close() if status != "503" else None
            await asyncio.sleep(1.0 if status == "503" else 0.0)
    connection.close()


async def grpc_client(call: Any, request: bytes, end: float, deadline: float, counts: dict[str, int]) -> None:
    """The same over gRPC."""
    import grpc

    while time.monotonic() < end:
        try:
            await call(request, timeout=deadline)
            status = "200"
        except grpc.RpcError as error:
            status = error.code().name
        counts[status] = counts.get(status, 0) + 1
        if status in ("UNAVAILABLE", "RESOURCE_EXHAUSTED"):
            await asyncio.sleep(1.0)


async def clients(job: dict[str, Any]) -> dict[str, Any]:
    """`job["clients"]` clients that ask as fast as they are answered."""
    instance = np.random.default_rng(0).normal(size=job["features"]).round(6)
    end = time.monotonic() + job["seconds"]
    counts: dict[str, int] = {}
    if job["protocol"] == "REST":
        request = message([instance.tolist()])
        work = [rest_client(job["rest_port"], request, end, job["deadline"], counts) for _ in range(job["clients"])]
        await asyncio.gather(*work)
    else:
        import grpc
        import tensorflow as tf
        from tensorflow_serving.apis.predict_pb2 import PredictRequest

        proto = PredictRequest(model_spec={"name": "model"})
        proto.inputs["instances"].CopyFrom(tf.make_tensor_proto(instance[None], tf.float32))
        request = proto.SerializeToString()
        end = time.monotonic() + job["seconds"]
        options = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
        channels = [grpc.aio.insecure_channel(f"127.0.0.1:{job['grpc_port']}", options) for _ in range(8)]
        calls = [channel.unary_unary("/tensorflow.serving.PredictionService/Predict") for channel in channels]
        work = [
            grpc_client(calls[i % len(calls)], request, end, job["deadline"], counts) for i in range(job["clients"])
        ]
        await asyncio.gather(*work)
        for channel in channels:
            await channel.close()
    return {"counts": counts, "answered_per_second": round(counts.get("200", 0) / job["seconds"], 1)}


async def probe(job: dict[str, Any]) -> dict[str, Any]:
    """One client that asks every 20 ms."""
    request = message([np.random.default_rng(0).normal(size=job["features"]).round(6).tolist()])
    connection = RestConnection(job["rest_port"])
    await connection.ask(request)
    seconds = []
    end = time.monotonic() + job["seconds"]
    while time.monotonic() < end:
        started = time.perf_counter()
        if await connection.ask(request) != 200:
            raise SystemExit("a short request was refused")
        seconds.append(time.perf_counter() - started)
        await asyncio.sleep(0.02)
    milliseconds = 1000 * np.array(seconds)
    return {
        "requests": len(seconds),
        "median_ms": round(float(np.median(milliseconds)), 2),
        "p99_ms": round(float(np.quantile(milliseconds, 0.99)), 2),
    }


async def long_bodies(job: dict[str, Any]) -> dict[str, Any]:
    """One client that sends bodies of `job["bytes"]` one after another."""
    one = np.random.default_rng(0).normal(size=job["features"]).round(6).tolist()
    request = message([one] * (job["bytes"] // len(json.dumps(one))))
    connection = RestConnection(job["rest_port"])
    print("ready", flush=True)
    counts: dict[str, int] = {}
    end = time.monotonic() + job["seconds"]
    while time.monotonic() < end:
        status = str(await connection.ask(request))
        counts[status] = counts.get(status, 0) + 1
    return {"counts": counts}


async def idle(job: dict[str, Any]) -> dict[str, Any]:
    """Connections that send nothing."""
    streams = [await asyncio.open_connection("127.0.0.1", job["rest_port"]) for _ in range(job["clients"])]
    print("ready", flush=True)
    await asyncio.sleep(job["seconds"])
    for _, writer in streams:
        writer.close()
    return {"connections": len(streams)}


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    work = {"clients": clients, "probe": probe, "long": long_bodies, "idle": idle}[given["what"]]
    print(json.dumps(asyncio.run(work(given))), flush=True)
