// Shared by plans of this folder.
export const boost = (x: any) => x * coalesce(P.weight, 0.5);

export function broken(x: any) {
  return boost(x) << 1;
}
