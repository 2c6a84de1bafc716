export default function () {
return (function () { "use strict"; return this === undefined })()
}
