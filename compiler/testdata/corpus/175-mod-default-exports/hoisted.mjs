export const early = later();
export default function later() { return 'hoisted default'; }
