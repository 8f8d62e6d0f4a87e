"""Report pages, and tables and plots of results. Names are imported on first use."""

from crowdzoo.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(  # pyright: ignore
    __name__,
    {
        "crowdzoo.report.cards": "MethodCard method_cards",
        "crowdzoo.report.page": "Condition ReportPage report_page",
        "crowdzoo.report.page_changes": "read_numbers",
        "crowdzoo.report.plots": "plot_comparison",
    },
)
