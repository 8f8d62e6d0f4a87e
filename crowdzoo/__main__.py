"""`python -m crowdzoo` is the command `crowdzoo`."""

import sys

from crowdzoo.cli import main

sys.exit(main())
