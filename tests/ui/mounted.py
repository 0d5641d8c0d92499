"""A program of somebody else's that has the dashboard under a prefix. Prints its address and serves."""

import socket
import sys

import uvicorn
from fastapi import FastAPI

from tasklib import Config
from tasklib.server import create_app


def main(prefix: str) -> None:
    app = FastAPI()
    app.mount(prefix, create_app(Config()))
    listening = socket.create_server(("127.0.0.1", 0))  # requests wait in it until they are served
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    main(sys.argv[1])
