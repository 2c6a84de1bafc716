export const ok = [1, 2, 3].map((x) => x / 4);
