// Package cli has the command "rankd registry", which writes files beside the tables of a registry: the ids
// of columns in the short form, and tables for the data that a Redis has. A [Program] and its command belong
// to one goroutine.
package registry
