package rankd

var InCallback = inCallback
