// The branches of a conversation: which runs have another message at the same place. Pure.

/**
 * The runs with a version of a message, the oldest first, and which of them is shown: `{runs, at}`.
 * @param {{run: string, parent: string|null, calls?: number, started: number}[]} family `calls` is how many of the parent's calls a branch has.
 * @param {number} call which message of the run, from 1.
 */
export function versionsOf(family, run, call) {
  const known = new Map(family.map((each) => [each.run, each]));
  const up = (id, isInside) => {
    let each = known.get(id);
    while (each && known.has(each.parent) && isInside(each)) each = known.get(each.parent);
    return each?.run;
  };
  // A message belongs to the run that began it, and stands beside others where what was said before is the same.
  const owner = up(run, (each) => call <= each.calls), root = (id) => up(id, (each) => call - 1 <= each.calls);
  const runs = family.filter((each) => root(each.run) === root(run) && (each.calls === call - 1 || each.run === root(run))).map((each) => each.run);
  return { runs, at: runs.indexOf(owner) };
}
