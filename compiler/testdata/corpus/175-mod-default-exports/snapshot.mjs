let v = 1;
export default v;
export const bump = () => { v++; };
