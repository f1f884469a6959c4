"""Tests of Koi programs: from paths to cases, from cases to outcomes in several processes, and to reports."""
