// Package lines turns the output of a worker, which may be anything, into lines of bounded length that are fit for a log, and
// keeps the end of it for error reports.
package lines
