package nfsserver

// Once is Procedure.Cached for procedures of which only some calls need it: it
// reports whether the call is new. Otherwise it has been answered, or will be
// when the call that it repeats is, and no longer belongs to the procedure. It
// is to be called before anything is read of Args.
func (c *Call) Once() bool {
	if c.server.replies == nil || c.server.replies.admit(c) {
		return true
	}
	c.server.duplicates.Add(1)
	return false
}
