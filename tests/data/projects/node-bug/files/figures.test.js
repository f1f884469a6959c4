import assert from "node:assert/strict";
import { test } from "node:test";

import { median, sum } from "./figures.js";

test("sums", () => {
  assert.equal(sum([1, 2, 3]), 6);
  assert.equal(sum([]), 0);
});

test("medians of odd and even lists", () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 3, 2]), 2.5);
});

test("numbers are ordered as numbers", () => {
  assert.equal(median([10, 9, 1]), 9);
});

test("the list stays as it is", () => {
  const given = [2, 1];
  median(given);
  assert.deepEqual(given, [2, 1]);
});

test("there is no median of nothing", () => {
  assert.throws(() => median([]), RangeError);
});
