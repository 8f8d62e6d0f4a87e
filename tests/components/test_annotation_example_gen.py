import pathlib

import numpy as np
import pyarrow as pa
import pytest

from crowdzoo.annotations import Annotations
from crowdzoo.components.example_files import read_dataset_info
from crowdzoo.errors import DataError

from .conftest import records
