"""A client that knows nothing finds every service and its messages through reflection, as grpcurl
does.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pb2, json_format
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from tests.rpc.calling import RPCS, SERVED
from tests.rpc.small import channel_to, serving
from tests.rpc.store_suite import filled


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[grpc.Channel]:
    path: Path = tmp_path_factory.mktemp("reflected")
    with serving(path) as (server, store), channel_to(server) as channel:
        filled(store)
        yield channel


class Explorer:
    """Descriptors in a pool of its own, filled from the server alone."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.channel = channel
        self.pool = DescriptorPool()
        self._files: set[str] = set()

    def ask(self, **what: str) -> Any:
        request = reflection_pb2.ServerReflectionRequest(**what)
        stub = reflection_pb2_grpc.ServerReflectionStub(self.channel)
        (answer,) = stub.ServerReflectionInfo(iter([request]), timeout=10)
        return answer

    def services(self) -> list[str]:
        return [one.name for one in self.ask(list_services="").list_services_response.service]

    def learn(self, answer: Any) -> None:
        """The files of an answer, those they import first."""
        for data in answer.file_descriptor_response.file_descriptor_proto:
            file = descriptor_pb2.FileDescriptorProto.FromString(data)
            if file.name in self._files:
                continue
            self._files.add(file.name)
            for needed in file.dependency:
                if needed not in self._files:
                    self.learn(self.ask(file_by_filename=needed))
            self.pool.AddSerializedFile(data)

    def service(self, name: str) -> Any:
        self.learn(self.ask(file_containing_symbol=name))
        return self.pool.FindServiceByName(name)


def test_every_service_is_listed_and_described(channel: grpc.Channel) -> None:
    explorer = Explorer(channel)
    names = explorer.services()
    assert {name.split("/")[1] for name in SERVED} <= set(names)
    assert {"grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"} <= set(names)
    found = {}
    for name in names:
        if name.startswith("ptkstore."):
            for method in explorer.service(name).methods:
                found[f"/{name}/{method.name}"] = (method.client_streaming, method.server_streaming)
    assert found == {
        name: (RPCS[name].client_streaming, RPCS[name].server_streaming) for name in SERVED
    }


def test_a_method_is_called_by_what_reflection_told(channel: grpc.Channel) -> None:
    explorer = Explorer(channel)
    method = explorer.service("ptkstore.v1.PtkService").methods_by_name["GetPtk"]
    asked = json_format.ParseDict({"name": "hour-speed"}, GetMessageClass(method.input_type)())
    answer = channel.unary_unary(f"/{method.containing_service.full_name}/{method.name}")(
        asked.SerializeToString(), timeout=10
    )
    told = json_format.MessageToDict(GetMessageClass(method.output_type).FromString(answer))
    assert (told["ptk"]["name"], told["ptk"]["status"]) == ("hour-speed", "PTK_STATUS_ACTIVE")


def test_the_newer_reflection_is_declined_so_that_tools_fall_back(channel: grpc.Channel) -> None:
    call = channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
    with pytest.raises(grpc.RpcError) as error:
        list(call(iter([b""]), timeout=10))
    assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED  # type: ignore[attr-defined, unused-ignore]


def test_a_method_is_found_by_its_name(channel: grpc.Channel) -> None:
    explorer = Explorer(channel)
    explorer.learn(explorer.ask(file_containing_symbol="ptkstore.v1.PtkService.GetPtk"))
    assert "GetPtk" in explorer.pool.FindServiceByName("ptkstore.v1.PtkService").methods_by_name


@pytest.mark.parametrize("name", ["Nothing", "PtkService.Nothing", "Nothing.GetPtk", ""])
def test_what_is_not_there_is_not_found(channel: grpc.Channel, name: str) -> None:
    answer = Explorer(channel).ask(file_containing_symbol=f"ptkstore.v1.{name}")
    assert answer.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]
