"""What a model file holds, and what would fit where."""

from pascal_engine.inspection.memory import Demand, Fit, Place, fits, places
from pascal_engine.inspection.report import Report, TypeCount

__all__ = ["Demand", "Fit", "Place", "Report", "TypeCount", "fits", "places"]
