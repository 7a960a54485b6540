"""Tests of the bundled engine."""
