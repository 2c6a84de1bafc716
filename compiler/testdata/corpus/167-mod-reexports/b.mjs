export const double = (x) => x * 2;
export const clash = 'b', winner = 'b';
export default function () { return 'b main'; }
