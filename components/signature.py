"""TFX's markers for a component's arguments. To a type checker, which TFX tells nothing, they are what they hold."""

from typing import TYPE_CHECKING, Any

from tfx import v1 as tfx

__all__ = ["BeamComponentParameter", "InputArtifact", "OutputArtifact", "Parameter", "component"]

component: Any = tfx.dsl.components.component

if TYPE_CHECKING:
    from typing import Annotated, TypeVar

    T = TypeVar("T")
    InputArtifact = Annotated[T, "input"]
    OutputArtifact = Annotated[T, "output"]
    Parameter = Annotated[T, "parameter"]
    BeamComponentParameter = Annotated[T | Any, "pipeline"]
else:
    BeamComponentParameter = tfx.dsl.components.BeamComponentParameter
    InputArtifact = tfx.dsl.components.InputArtifact
    OutputArtifact = tfx.dsl.components.OutputArtifact
    Parameter = tfx.dsl.components.Parameter
