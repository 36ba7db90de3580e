package nfsserver

// Once does for one call what Procedure.Cached does for all calls of a procedure. It
// reports whether the call is new. A repeated call gets the reply of the first one, now or
// when there is one, and no longer belongs to the procedure. Once must be called before
// anything is read from Args.
func (c *Call) Once() bool {
	return c.server.replies == nil || c.server.replies.admit(c)
}
