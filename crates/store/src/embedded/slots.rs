//! The slots of all jobs in memory, by number.

use super::slot::Slot;

/// Jobs by slot number. The number of a removed job is used again.
#[derive(Debug, Default)]
pub(super) struct Slots {
    places: Vec<Option<Slot>>,
    free: Vec<u32>,
}

impl Slots {
    pub(super) fn get(&self, place: u32) -> Option<&Slot> {
        self.places.get(place as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut Slot> {
        self.places.get_mut(place as usize)?.as_mut()
    }

    pub(super) fn insert(&mut self, slot: Slot) -> u32 {
        let Some(place) = self.free.pop() else {
            self.places.push(Some(slot));
            return self.places.len() as u32 - 1;
        };
        self.places[place as usize] = Some(slot);
        place
    }

    pub(super) fn remove(&mut self, place: u32) -> Option<Slot> {
        let slot = self.places.get_mut(place as usize)?.take()?;
        self.free.push(place);
        Some(slot)
    }

    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// How many slots there are, used or free.
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    /// The jobs in these slots, where there are any.
    pub(super) fn range(&self, places: std::ops::Range<usize>) -> impl Iterator<Item = (u32, &Slot)> {
        let end = places.end.min(self.places.len());
        let start = places.start.min(end);
        let range = self.places[start..end].iter().enumerate();
        range.filter_map(move |(index, slot)| Some(((start + index) as u32, slot.as_ref()?)))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Slot)> {
        self.range(0..self.places.len())
    }
}
