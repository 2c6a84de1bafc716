// Package bench measures engines: it keeps a number of requests in flight and
// records how long each took. Programs below it print what it finds.
package bench
