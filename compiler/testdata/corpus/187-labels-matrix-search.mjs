// Finds the first pair of cells with a given sum, and counts what was looked at.
const grid = [[3, 8, 1], [9, 2, 7], [5, 4, 6]];
function find(sum) {
  let looked = 0;
  let found = null;
  search:
  for (let r1 = 0; r1 < grid.length; r1++) {
    for (let c1 = 0; c1 < grid[r1].length; c1++) {
      for (let r2 = r1; r2 < grid.length; r2++) {
        for (let c2 = 0; c2 < grid[r2].length; c2++) {
          if (r2 === r1 && c2 <= c1) continue;
          looked++;
          if (grid[r1][c1] + grid[r2][c2] === sum) {
            found = [grid[r1][c1], grid[r2][c2]];
            break search;
          }
        }
      }
    }
  }
  return { found, looked };
}
export default function () {
  return [find(11), find(17), find(100)];
}
