export default function () {
const größe = 2, \u0061b = 3; return größe * ab + größe
}
