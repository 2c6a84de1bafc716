// Package joinlog joins the log of what was served with what users did, as rows to train a model on. Lines and events
// become records, which are sorted in runs on disk, so that a join needs a bounded amount of memory. A join and all its
// parts belong to one goroutine.
//
// docs/glossary.md explains the words that this package shares with others. docs/learn.md has the formats.
package joinlog
