// Package admin, which is not covered by the compatibility promise, has the pages for operators: is the
// process alive and ready, its metrics, its profiles, and the trace of one request. They belong on a port
// that strangers cannot reach, because whoever asks here may run any plan.
package admin
