package client

import "github.com/stretchr/testify/require"

// What happens to groups of either protocol: the scenarios, which tests give a crew of the one or the
// other.

// comesAndGoes has members of a topic of six partitions join one after the other and leave again,
// while 130 messages a partition are written and read. It returns the last one, which holds all.
func (c *crew) comesAndGoes() (three *hand) {
	c.writeAll(6, 0, 50)
	one := c.works(ReaderConfig{})
	c.shared([]int{6}, one)
	two := c.works(ReaderConfig{})
	c.shared([]int{3, 3}, one, two)
	c.writeAll(6, 50, 100)
	three = c.works(ReaderConfig{})
	c.shared([]int{2, 2, 2}, one, two, three)
	c.total(600)
	two.leave()
	c.shared([]int{3, 3}, one, three)
	c.writeAll(6, 100, 120)
	c.total(720)
	one.leave()
	c.shared([]int{6}, three)
	c.writeAll(6, 120, 130)
	c.total(780)
	return three
}

// outlivesAMember has one of two members of a topic of four partitions killed.
func (c *crew) outlivesAMember() {
	c.writeAll(4, 0, 100)
	one, two := c.works(ReaderConfig{}), c.works(ReaderConfig{})
	c.shared([]int{2, 2}, one, two)
	one.kill()
	c.writeAll(4, 100, 150)
	c.shared([]int{4}, two)
	c.total(600)
	two.leave()
	c.upTo(4, 150)
}

// outlivesItsCoordinators has the coordinator of a group of a topic of six partitions move, and
// connections closed, over and over.
func (c *crew) outlivesItsCoordinators() {
	one, two := c.works(ReaderConfig{}), c.works(ReaderConfig{})
	c.shared([]int{3, 3}, one, two)
	for i := range 6 {
		c.writeAll(6, i*20, i*20+20)
		switch i % 3 {
		case 0:
			c.cluster.MoveCoordinators()
		case 1:
			c.cluster.CloseConnections()
		case 2:
			c.cluster.CloseNodeConnections(c.cluster.Coordinator(c.name))
		}
		c.total(6 * 20 * (i + 1))
	}
	c.shared([]int{3, 3}, one, two)
	one.leave()
	two.leave()
	c.upTo(6, 120)
}

// upTo is every partition's committed offset.
func (c *crew) upTo(partitions int, offset int64) {
	c.t.Helper()
	var ids []int32
	var want []int64
	for p := range partitions {
		ids, want = append(ids, int32(p)), append(want, offset)
	}
	require.Equal(c.t, want, c.committed(ids...))
}
