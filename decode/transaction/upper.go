package transaction

// What a Tracker keeps with connections and operations: see rdma.Upper and rdma.Tag.

func (*half) UpperOfConnection()  {}
func (merged) UpperOfConnection() {}

func (*sendTag) TagOfOperation() {}
func (*opTag) TagOfOperation()   {}
func (*half) TagOfOperation()    {}
