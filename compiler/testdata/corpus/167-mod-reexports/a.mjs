export const circle = (r) => 3 * r * r;
export const clash = 'a', winner = 'a';
export default 'a default is not re-exported';
