const header = new DataView(new ArrayBuffer(6));
header.setUint16(0, 0xcafe); header.setUint32(2, 3);
const fields = [header.getUint16(0).toString(16), header.getUint32(2)];
export default function () {
  const out = [...fields];
  for (let at = 0; ; at += 2) out.push(header.getUint32(at));
}
