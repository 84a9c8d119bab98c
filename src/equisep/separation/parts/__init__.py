"""What two passes over a part of the data leave at one site, so that the parts add up to the whole."""

from equisep.separation.parts.second_sums import SecondSums, put_second_sums, second_sums

__all__ = ["SecondSums", "put_second_sums", "second_sums"]
