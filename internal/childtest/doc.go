// Package childtest is the suite that every kind of child passes: the same requests, faults and endings, and the same
// answers, whether the object lives in the host, in a worker process or behind a Child made elsewhere.
//
// [Run] runs it. A [Kind] says how a child of the kind is made and what the kind can do at all. Where a kind cannot do
// something the suite checks how it refuses.
//
// The object of every child is a [Worker], made by [NewWorker] from a [Job]. Handlers meet the test at a gate, a local
// address that the job names: there a test sees that a handler has begun and says when it may go on, wherever it runs.
package childtest
