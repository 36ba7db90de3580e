package store

// ReadResult is what Read has read. The zero value is ready; it can be used
// again after Release.
type ReadResult struct {
	// Data are the bytes. They do not change until Release, whatever is
	// written meanwhile, and must not be changed. Fewer than asked for only at
	// the end of the file.
	Data []byte
	EOF  bool // the end of the file was reached
	Attr Attr // after the read

	owner Releaser
	token any
}

// Releaser is a store's part of ReadResult.Release.
type Releaser interface {
	// ReleaseRead takes back the memory of a result.
	ReleaseRead(token any)
}

// Keep is for stores: it sets who is told of Release, with which word. A token
// that is a pointer costs no allocation.
func (r *ReadResult) Keep(owner Releaser, token any) { r.owner, r.token = owner, token }

// Release gives back the memory of Data. More than one call does no harm, nor
// does one after a Read that failed.
func (r *ReadResult) Release() {
	owner, token := r.owner, r.token
	r.Data, r.owner, r.token = nil, nil, nil
	if owner != nil {
		owner.ReleaseRead(token)
	}
}
