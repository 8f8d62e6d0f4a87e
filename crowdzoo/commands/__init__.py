"""The subcommands of `crowdzoo`, one file each."""
