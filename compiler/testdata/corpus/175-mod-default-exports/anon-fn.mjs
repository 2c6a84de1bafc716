export default function (x) { return x + 1; }
