//! Which effects meet in a cell, and the order in which they are eliminated.
//!
//! The effects of one level are a *node*. Two nodes meet where a cell has both, and `H`, the
//! curvature of the penalised likelihood in the effects, has a block for each node and each two
//! that meet. Nodes are eliminated in the order of how many others they meet, so that the effects
//! of interactions go before those of scenarios, and those before the few effects of models: what
//! fills in is the small dense block of the last ones.

use crate::error::{Error, Result};

/// The effects of the levels of one grouping.
#[derive(Debug, Clone)]
pub struct Part {
    /// Level of each cell.
    pub codes: Vec<u32>,
    /// What multiplies the effects, (cells, width) row by row; empty for a single effect that is
    /// added as it is.
    pub z: Vec<f64>,
    /// Effects of a level.
    pub width: usize,
    /// Levels.
    pub n_levels: usize,
}

/// The effects of one level, in the order of elimination.
#[derive(Debug, Clone, Copy)]
pub struct Node {
    /// The grouping.
    pub part: usize,
    /// Number of the first of its effects.
    pub start: usize,
}

/// Two nodes that meet.
#[derive(Debug, Clone, Copy)]
pub struct Edge {
    /// First effect of the node of the first part.
    pub first: u32,
    /// First effect of the node of the second part.
    pub second: u32,
    /// Rows of the column of the earlier one, below its own, before those of the later.
    pub tail: u32,
}

/// Two parts, and where their nodes meet.
#[derive(Debug, Clone)]
pub struct Pair {
    /// Number of the first part.
    pub first: usize,
    /// Number of the second, larger.
    pub second: usize,
    /// For each cell, its edge.
    pub edge: Vec<u32>,
    /// The edges.
    pub edges: Vec<Edge>,
    /// Place of the blocks of the first edge among all blocks.
    pub base: usize,
}

/// The layout of `H`, of its Cholesky factor, and of all vectors of effects.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// Effects.
    pub size: usize,
    /// Most effects of a level.
    pub wide: usize,
    /// The nodes in their order.
    pub nodes: Vec<Node>,
    /// For each part and level, its first effect.
    pub level_start: Vec<Vec<u32>>,
    /// For each part and cell, the first effect of its level.
    pub cell_start: Vec<Vec<u32>>,
    /// Pairs of parts.
    pub pairs: Vec<Pair>,
    /// Values in all blocks: for each effect the row of its node's block, then those of the edges.
    pub n_blocks: usize,
    /// Start of each column of the factor in `rows`; the diagonal comes first.
    pub column: Vec<usize>,
    /// Row of each value of the factor.
    pub rows: Vec<u32>,
    /// Start of each row in `across`.
    pub row: Vec<usize>,
    /// For each row of the factor, left of the diagonal: column and place of the value.
    pub across: Vec<(u32, u32)>,
}

/// A count that fits in an index.
fn index(count: usize) -> Result<u32> {
    u32::try_from(count).map_err(|_| Error::TooManyRows { limit: u32::MAX, actual: count })
}

/// For each cell the number of its combination of two codes, and the combinations in the order of
/// the first code, then of appearance.
fn combinations(first: &Part, second: &Part) -> (Vec<u32>, Vec<(u32, u32)>) {
    let mut start = vec![0_usize; first.n_levels + 1];
    for &code in &first.codes {
        start[code as usize + 1] += 1;
    }
    for level in 0..first.n_levels {
        start[level + 1] += start[level];
    }
    let mut cells = vec![0_usize; first.codes.len()];
    let mut next = start.clone();
    for (cell, &code) in first.codes.iter().enumerate() {
        cells[next[code as usize]] = cell;
        next[code as usize] += 1;
    }
    let mut found = Vec::new();
    let mut number = vec![0_u32; cells.len()];
    let mut seen = vec![(u32::MAX, 0_u32); second.n_levels];
    for &cell in &cells {
        let (a, b) = (first.codes[cell], second.codes[cell]);
        if seen[b as usize].0 != a {
            // At most one a cell, and their number fits.
            seen[b as usize] = (a, u32::try_from(found.len()).unwrap_or(u32::MAX));
            found.push((a, b));
        }
        number[cell] = seen[b as usize].1;
    }
    (number, found)
}

/// For each node the later ones that its column of the factor has, in their order.
fn structure(meets: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let n = meets.len();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut mark = vec![usize::MAX; n];
    let mut out: Vec<Vec<u32>> = Vec::with_capacity(n);
    for (node, direct) in meets.iter().enumerate() {
        let mut list = direct.clone();
        for &later in &list {
            mark[later as usize] = node;
        }
        for &child in &children[node] {
            for &later in &out[child] {
                if later as usize > node && mark[later as usize] != node {
                    mark[later as usize] = node;
                    list.push(later);
                }
            }
        }
        list.sort_unstable();
        if let Some(&parent) = list.first() {
            children[parent as usize].push(node);
        }
        out.push(list);
    }
    out
}

impl Pattern {
    /// Looks at which nodes meet, and orders them.
    ///
    /// # Errors
    /// [`Error::TooManyRows`] where there are more effects or cells than an index can name.
    pub fn new(parts: &[Part], n_cells: usize) -> Result<Self> {
        index(n_cells)?;
        let base: Vec<usize> = parts
            .iter()
            .scan(0, |next, part| {
                let base = *next;
                *next += part.n_levels;
                Some(base)
            })
            .collect();
        let n_nodes: usize = parts.iter().map(|part| part.n_levels).sum();
        let size: usize = parts.iter().map(|part| part.n_levels * part.width).sum();
        index(size)?;
        let mut met = Vec::new();
        let mut degree = vec![0_usize; n_nodes];
        for second in 1..parts.len() {
            for first in 0..second {
                let (number, found) = combinations(&parts[first], &parts[second]);
                for &(a, b) in &found {
                    degree[base[first] + a as usize] += parts[second].width;
                    degree[base[second] + b as usize] += parts[first].width;
                }
                met.push((first, second, number, found));
            }
        }
        let owner: Vec<usize> = (parts.iter().enumerate())
            .flat_map(|(number, part)| std::iter::repeat_n(number, part.n_levels))
            .collect();
        let mut order: Vec<usize> = (0..n_nodes).collect();
        order.sort_by_key(|&node| (degree[node], node));
        let mut place = vec![0_usize; n_nodes];
        let mut nodes = Vec::with_capacity(n_nodes);
        let mut start = 0;
        for (at, &node) in order.iter().enumerate() {
            place[node] = at;
            nodes.push(Node { part: owner[node], start });
            start += parts[owner[node]].width;
        }
        let mut meets: Vec<Vec<u32>> = vec![Vec::new(); n_nodes];
        for (first, second, _, found) in &met {
            for &(a, b) in found {
                let (a, b) = (place[base[*first] + a as usize], place[base[*second] + b as usize]);
                meets[a.min(b)].push(index(a.max(b))?);
            }
        }
        let structure = structure(&meets);
        let level_start: Vec<Vec<u32>> = (parts.iter().zip(&base))
            .map(|(part, base)| {
                (0..part.n_levels).map(|level| index(nodes[place[base + level]].start)).collect()
            })
            .collect::<Result<_>>()?;
        let cell_start = (parts.iter().zip(&level_start))
            .map(|(part, start)| part.codes.iter().map(|&code| start[code as usize]).collect())
            .collect();
        let wide = parts.iter().map(|part| part.width).max().unwrap_or(1);
        let widths: Vec<usize> = nodes.iter().map(|node| parts[node.part].width).collect();
        let mut n_blocks = size * wide;
        let mut pairs = Vec::with_capacity(met.len());
        for (first, second, edge, found) in met {
            let edges = (found.iter())
                .map(|&(a, b)| {
                    let (a, b) = (base[first] + a as usize, base[second] + b as usize);
                    let (early, late) = (place[a].min(place[b]), place[a].max(place[b]));
                    let below = &structure[early];
                    let before = below.partition_point(|&node| (node as usize) < late);
                    let tail = below[..before].iter().map(|&node| widths[node as usize]).sum();
                    Ok(Edge {
                        first: index(nodes[place[a]].start)?,
                        second: index(nodes[place[b]].start)?,
                        tail: index(tail)?,
                    })
                })
                .collect::<Result<Vec<Edge>>>()?;
            let base = n_blocks;
            n_blocks += edges.len() * parts[first].width * parts[second].width;
            pairs.push(Pair { first, second, edge, edges, base });
        }
        let mut pattern = Self {
            size,
            wide,
            nodes,
            level_start,
            cell_start,
            pairs,
            n_blocks,
            column: vec![0],
            rows: Vec::new(),
            row: Vec::new(),
            across: Vec::new(),
        };
        pattern.lay_out(&structure, &widths)?;
        Ok(pattern)
    }

    /// Fills in the columns and rows of the factor.
    fn lay_out(&mut self, structure: &[Vec<u32>], widths: &[usize]) -> Result<()> {
        for ((node, below), &width) in self.nodes.iter().zip(structure).zip(widths) {
            for within in 0..width {
                for row in within..width {
                    self.rows.push(index(node.start + row)?);
                }
                for &later in below {
                    let start = self.nodes[later as usize].start;
                    for row in 0..widths[later as usize] {
                        self.rows.push(index(start + row)?);
                    }
                }
                self.column.push(self.rows.len());
            }
        }
        index(self.rows.len())?;
        let mut row = vec![0_usize; self.size + 1];
        for column in 0..self.size {
            for &below in &self.rows[self.column[column] + 1..self.column[column + 1]] {
                row[below as usize + 1] += 1;
            }
        }
        for at in 0..self.size {
            row[at + 1] += row[at];
        }
        let mut next = row.clone();
        self.across = vec![(0, 0); row[self.size]];
        for column in 0..self.size {
            for place in self.column[column] + 1..self.column[column + 1] {
                let next = &mut next[self.rows[place] as usize];
                self.across[*next] = (index(column)?, index(place)?);
                *next += 1;
            }
        }
        self.row = row;
        Ok(())
    }

    /// Place in the factor of the value of an edge, for the effect `a` of its first node and `b` of
    /// its second, of these widths.
    #[must_use]
    pub fn place(&self, edge: &Edge, (a, b): (usize, usize), widths: (usize, usize)) -> usize {
        let (early, width, within, row) = if edge.first < edge.second {
            (edge.first, widths.0, a, b)
        } else {
            (edge.second, widths.1, b, a)
        };
        self.column[early as usize + within] + (width - within) + edge.tail as usize + row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(codes: &[u32], width: usize) -> Part {
        let n_levels = codes.iter().max().map_or(0, |&code| code as usize + 1);
        let z = if width == 1 { Vec::new() } else { vec![1.0; codes.len() * width] };
        Part { codes: codes.to_vec(), z, width, n_levels }
    }

    #[test]
    fn few_levels_come_last_and_interactions_first() {
        let codes: Vec<(u32, u32)> = (0..20).flat_map(|a| (0..3).map(move |b| (a, b))).collect();
        let scenario: Vec<u32> = codes.iter().map(|&(a, _)| a).collect();
        let model: Vec<u32> = codes.iter().map(|&(_, b)| b).collect();
        let both: Vec<u32> = codes.iter().map(|&(a, b)| 3 * a + b).collect();
        let parts = [part(&model, 1), part(&scenario, 2), part(&both, 1)];
        let pattern = Pattern::new(&parts, codes.len()).expect("small");
        let owners: Vec<usize> = pattern.nodes.iter().map(|node| node.part).collect();
        assert_eq!(owners[..60], [2; 60]);
        assert_eq!(owners[60..80], [1; 20]);
        assert_eq!(owners[80..], [0; 3]);
        assert_eq!(pattern.size, 103);
        // Nothing fills in but the block of the models.
        assert_eq!(pattern.rows.len(), 60 * 4 + 20 * (5 + 4) + 6);
        for pair in &pattern.pairs {
            let widths = (parts[pair.first].width, parts[pair.second].width);
            for edge in &pair.edges {
                for a in 0..widths.0 {
                    for b in 0..widths.1 {
                        let (x, y) = (edge.first as usize + a, edge.second as usize + b);
                        let place = pattern.place(edge, (a, b), widths);
                        assert_eq!(pattern.rows[place] as usize, x.max(y));
                        let column = pattern.column.partition_point(|&start| start <= place) - 1;
                        assert_eq!(column, x.min(y));
                    }
                }
            }
        }
    }
}
