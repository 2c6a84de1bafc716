let v = 1;
export { v as default };
export const bump = () => { v++; };
