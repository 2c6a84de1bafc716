export default function () {
return null.property
}
