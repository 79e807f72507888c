// Package gosource counts what Go source files hold and adds it up by folder. It is the work that an example gives to
// workers; it knows nothing of them.
//
// [Walk] finds the files of a tree, [Parse] reads one, and a [Table] collects the results in whatever order they come and
// writes the same text or JSON for the same files each time.
package gosource
