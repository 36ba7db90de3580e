package ibcm

const rtuPrivate = 8

// RTU says that the requester is ready to use the connection.
type RTU []byte

// Private is the private data, 224 bytes.
func (r RTU) Private() []byte { return area(r, rtuPrivate, DataSize) }

// SetIDs sets the communication ids.
func (r RTU) SetIDs(local, remote uint32) { putIDs(r, local, remote) }
