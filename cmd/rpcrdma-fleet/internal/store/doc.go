// Package store reads captures from object stores and local files, and writes results to a store.
//
// What fails because a store is away for a while is tried again: see Options.Patience. Objects are written whole or
// not at all. Objects of captures are read as streams, which go on at the same offset after an error, and which
// notice that an object has been changed.
package store

import (
	_ "gocloud.dev/blob/fileblob" // file://
	_ "gocloud.dev/blob/gcsblob"  // gs://
	_ "gocloud.dev/blob/memblob"  // mem://, for tests
	_ "gocloud.dev/blob/s3blob"   // s3://
)
