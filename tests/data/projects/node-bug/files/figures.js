/** Figures of lists of numbers. */

/** The sum of all numbers. */
export function sum(numbers) {
  return numbers.reduce((all, each) => all + each, 0);
}

/** The number in the middle, or the mean of the two that are. The list stays as it is. */
export function median(numbers) {
  if (numbers.length === 0) throw new RangeError("no median of nothing");
  const ordered = numbers.sort();
  const middle = Math.floor(ordered.length / 2);
  return ordered.length % 2 ? ordered[middle] : (ordered[middle - 1] + ordered[middle]) / 2;
}
