"""`python -m crowdzoo` is the command `crowdzoo`."""

import sys

from crowdzoo.commands.main import main

sys.exit(main())
