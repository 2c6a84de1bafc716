// Command standin serves modelserver.Demo: a stand-in for a model server, for docs/model-servers.md.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"

	"github.com/rankd/rankd/internal/testing/modelserver"
)

func main() {
	address := flag.String("address", "127.0.0.1:8000", "where it listens")
	flag.Parse()
	fmt.Fprintln(os.Stderr, "serving the model ctr and /rerank at", *address)
	fmt.Fprintln(os.Stderr, http.ListenAndServe(*address, modelserver.Demo()))
	os.Exit(1)
}
